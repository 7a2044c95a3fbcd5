# brainfed with its libraries. In the folder of a study:
#     docker build --tag brainfed PATH_OF_THE_CLONE
#     docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/study" brainfed --cores all --configfile mystudy.yaml
# `--gpus all` and `--resources gpu=1` use GPUs: the torch of requirements.lock has CUDA on Linux.
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /brainfed
# Libraries first, so that a change of the code installs none of them again.
COPY Makefile pyproject.toml requirements.lock README.md LICENSE ./
# An index with CPU builds of torch spares gigabytes: docker build --build-arg PIP_EXTRA_INDEX_URL=...
ARG PIP_EXTRA_INDEX_URL
RUN python -m venv .venv && .venv/bin/pip install --no-cache-dir --quiet --requirement requirements.lock
COPY workflow workflow
COPY config config
RUN make install

# Snakemake asks for a name of the user, which a number from outside has not.
ENV PATH=/brainfed/.venv/bin:$PATH HOME=/tmp USER=study
WORKDIR /study
ENTRYPOINT ["snakemake", "--snakefile", "/brainfed/workflow/Snakefile"]
