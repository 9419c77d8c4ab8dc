"""The composition roots: from configuration and environment to ports. Adapters meet here and nowhere else."""
