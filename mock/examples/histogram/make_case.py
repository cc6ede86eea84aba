"""Writes case.json and its data: what `kimi-hcq mock exec` runs, and what must come out."""

import json
import struct

n, groups = 10_000, 4
values = bytes(((i * 2654435761) >> 24) & 0x3F for i in range(n))
bins = [values.count(value) for value in range(256)]

open("values.bin", "wb").write(values)
open("expect_bins.bin", "wb").write(struct.pack("<256I", *bins))
case = {
    "name": "histogram",
    "hsaco": "histogram.hsaco",
    "entry": "histogram",
    "grid_workgroups": [groups, 1, 1],
    "workgroup": [256, 1, 1],
    "kernarg_bytes": 24,
    "kernargs": [
        {"arg": "values", "offset": 0, "size": 8, "kind": "buffer", "bytes": n, "file": "values.bin"},
        {"arg": "n", "offset": 8, "size": 4, "kind": "u32", "hex": struct.pack("<I", n).hex()},
        {"arg": "bins", "offset": 16, "size": 8, "kind": "buffer", "bytes": 1024, "zeroed": True},
    ],
    "expect": [{"arg": "bins", "file": "expect_bins.bin", "dtype": "<u4", "shape": [256]}],
    "tolerance": {"abs": 0},
}
json.dump(case, open("case.json", "w"), indent=1)
