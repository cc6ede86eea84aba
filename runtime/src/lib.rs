//! kimi-hcq: runs Kimi K3 on eight MI350X.
