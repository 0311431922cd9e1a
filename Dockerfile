# The container image of a release: the program alone. It keeps what it writes in /work.
FROM scratch
WORKDIR /work
ENV TMPDIR=/work
COPY quotabench /quotabench
ENTRYPOINT ["/quotabench"]
