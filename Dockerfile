# holdfast-worker and holdfast-starter: two static programs and nothing else.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG LDFLAGS="-s -w -X holdfast/internal/version.Version=${VERSION}"
RUN CGO_ENABLED=0 go build -trimpath -ldflags="${LDFLAGS}" -o /out/holdfast-worker ./worker \
 && CGO_ENABLED=0 go build -trimpath -ldflags="${LDFLAGS}" -o /out/holdfast-starter ./starter \
 && mkdir -p /out/results

# The base has certificates, time zones and the user nonroot (65532), but no shell.
FROM gcr.io/distroless/static-debian12:nonroot@sha256:afa5c872c891853ca7fcf1f12c3edb23f7eeef36189728842dd51042ff57f7ab
COPY --from=build /out/holdfast-worker /out/holdfast-starter /usr/local/bin/
# A new volume takes its owner from here.
COPY --from=build --chown=65532:65532 /out/results /data/results
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/holdfast-worker"]
CMD ["--help"]
