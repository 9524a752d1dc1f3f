"""Where a workload goes and why: constraints, scores, and every word of the explanation."""
