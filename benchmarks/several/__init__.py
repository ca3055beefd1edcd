"""Several targets at once: the joint stack against marginals of our own, a copula on them, and Treeffuser."""
