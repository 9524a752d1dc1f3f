"""The nouns: frozen values and enums that every layer shares. Nothing here does anything."""
