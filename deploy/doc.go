// Package deploy holds what runs beside the programs on a cluster: Temporal's
// set-up scripts and configuration. Its tests hold docker-compose.yml and the
// Dockerfile to what the programs accept.
package deploy
