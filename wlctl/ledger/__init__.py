"""The one place that remembers: a relational store and the hash chain over what was done."""
