"""The event-driven simulator: a compiled engine that asks, and small drivers that answer."""
