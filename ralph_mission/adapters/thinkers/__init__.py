"""Who ranks the findings. A thinker chooses and describes; it never permits."""
