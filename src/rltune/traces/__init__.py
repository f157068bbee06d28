"""From raw archives to the canonical job table: obtaining, reading, cleaning, splitting and describing traces."""
