keep first; keep second; keep third
