"""Commands: parse, call one flow, render. Nothing here decides."""
