package transport

import "context"

type groupKey struct{}

// Together returns a context for the opening of programs that belong together, as
// those of one session do. A [Transport] with several connections to its machine has
// them on one, where it can, and what else is opened there on others, where that
// matters; what belongs to nothing has one to itself then.
func Together(ctx context.Context, group string) context.Context {
	return context.WithValue(ctx, groupKey{}, group)
}

// Group returns what [Together] was given, or nothing.
func Group(ctx context.Context) string {
	group, _ := ctx.Value(groupKey{}).(string)
	return group
}
