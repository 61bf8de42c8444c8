# SCALOR for machines without a GPU.
#
#   docker build --build-arg TORCH_INDEX=ADDRESS -t scalor .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/work" scalor track video.mp4
#
# ADDRESS is the index that pytorch.org shows for "Linux, Pip, CPU". Without it pip takes the build with CUDA, which also
# works, but is several GB larger.
FROM python:3.12-slim
ARG TORCH_INDEX=""
WORKDIR /opt/scalor
COPY constraints.txt ./
RUN pip install --no-cache-dir --constraint constraints.txt ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch
COPY pyproject.toml README.md LICENSE ./
COPY scalor scalor
RUN pip install --no-cache-dir --constraint constraints.txt ".[video,plots,measures,store,exports,ray]"
ENV HOME=/tmp
WORKDIR /work
ENTRYPOINT ["scalor"]
CMD ["--help"]
