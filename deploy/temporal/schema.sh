#!/bin/sh
# Brings Temporal's two databases to the schema of this image. Each step does
# nothing where it was done before. The connection comes from SQL_* variables.
set -eu

for pair in temporal:temporal temporal_visibility:visibility; do
	db=${pair%%:*} schema=${pair##*:}
	temporal-sql-tool --db "$db" create-database
	temporal-sql-tool --db "$db" setup-schema -v 0.0
	temporal-sql-tool --db "$db" update-schema --schema-name "postgresql/v12/$schema"
done
