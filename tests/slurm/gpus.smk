"""Jobs that hold a GPU for some seconds and tell which one, and when."""

NUMBERS = range(3)


rule all:
    input:
        expand("held/{number}.json", number=NUMBERS),


rule hold_gpu:
    output:
        "held/{number}.json",
    log:
        "logs/{number}.log",
    resources:
        gpu=1,
        mem_mb=500,
        runtime=5,
    script:
        "hold_gpu.py"
