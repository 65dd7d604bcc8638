"""Tables as the authors of τ–Lop publish what they measured: within a node, between nodes, and local sums."""

SHM = "#m\t2\n#tau\t2\n#m\to(m)\tL(m, 1)\tL(m, 2)\n1\t1e-6\t1e-7\t2e-7\n101\t1e-6\t3e-7\t4e-7\n"
IB = "#m\to(m)\tL(m, 1)\tL(m, 2)\n1\t2e-6\t1e-6\t1.5e-6\n101\t2e-6\t3e-6\t5e-6\n"
GAMMA = "#size\tMAX_I\tSUM_I\n4\t1e-7\t2e-7\n104\t1e-7\t12e-7\n"
TABLES = {"SHM": SHM, "IB": IB, "gamma": GAMMA}
