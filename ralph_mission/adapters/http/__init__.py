"""HTTP: one client for every service (`client`), and a guard for URLs that others name (`guard`)."""
