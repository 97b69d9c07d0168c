"""Short conversations again and again, each time with one disturbance at another point."""
