# The container image. "docker build ." builds it from a clone; a release copies its own program into it.
# It has the program and CA certificates, keeps what it writes in /work and does not run as root.
FROM golang:1.26 AS built
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /quotabench ./cmd/quotabench && mkdir /work

FROM gcr.io/distroless/static-debian12:nonroot AS base
WORKDIR /work
ENTRYPOINT ["/quotabench"]

FROM base AS released
ARG TARGETPLATFORM
COPY $TARGETPLATFORM/quotabench /quotabench

FROM base
COPY --from=built --chown=nonroot:nonroot /work /work
COPY --from=built /quotabench /quotabench
