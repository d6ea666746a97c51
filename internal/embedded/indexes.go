package embedded

import (
	"fmt"
	"slices"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/resolver"
)

// unusedIndexes are those of visibility's table that nothing here asks by: spare
// search attributes, sizes, counts and what belongs to schedules' and versions'
// features that Holdfast has no use for. The table comes with 58 and each is
// written three times a workflow, at its start, and out and in again at its end.
// A query by one of these columns is a scan; it answers the same.
func unusedIndexes() []string {
	names := []string{
		"by_history_length", "by_history_size_bytes", "by_execution_duration", "by_state_transition_count",
		"by_task_queue", "by_parent_run_id", "by_root_run_id", "by_batcher_user", "by_temporal_pause_info",
		"by_temporal_worker_deployment_version", "by_temporal_workflow_versioning_behavior", "by_temporal_worker_deployment",
		"by_temporal_low_cardinality_keyword_01",
	}
	spare := func(prefix string, from, to int) {
		for n := from; n <= to; n++ {
			names = append(names, fmt.Sprintf("%s_%02d", prefix, n))
		}
	}
	for _, kind := range []string{"by_bool", "by_datetime", "by_double", "by_int"} {
		spare(kind, 1, 3)
	}
	spare("by_keyword", len(searchAttributes)+1, 10)
	for _, kind := range []string{"by_temporal_bool", "by_temporal_datetime", "by_temporal_double", "by_temporal_int"} {
		spare(kind, 1, 2)
	}
	spare("by_temporal_keyword", 1, 4)
	slices.Sort(names)
	return names
}

// dropUnusedIndexes drops them from a database that is being made.
func dropUnusedIndexes(cfg *config.SQL) error {
	db, err := sql.NewSQLAdminDB(sqlplugin.DbKindUnknown, cfg, resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer func() { _ = db.Close() }()
	for _, name := range unusedIndexes() {
		// No IF EXISTS: a new server's schema that lacks one wants a look at this list.
		if err := db.Exec("DROP INDEX " + name); err != nil {
			return fmt.Errorf("drop index %s: %w", name, err)
		}
	}
	return nil
}
