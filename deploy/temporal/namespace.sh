#!/bin/sh
# Waits until the cluster serves, then makes the namespace if it is not there.
set -eu

tries=60
until temporal operator cluster health >/dev/null 2>&1; do
	tries=$((tries - 1))
	if [ "$tries" -le 0 ]; then
		echo "Temporal at $TEMPORAL_ADDRESS does not serve" >&2
		exit 1
	fi
	sleep 2
done

if temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
	echo "namespace $TEMPORAL_NAMESPACE is there"
	exit 0
fi
# 30 days: a workflow id is refused a second time only as long as it is kept.
temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 720h
