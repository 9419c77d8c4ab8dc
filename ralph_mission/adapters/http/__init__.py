"""HTTP: one client for every service that is asked (`client`), and a guard for addresses that others name (`guard`)."""
