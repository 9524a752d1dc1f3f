"""The imperative shell, a flow for each verb: gather, decide, record, act, record the outcome."""
