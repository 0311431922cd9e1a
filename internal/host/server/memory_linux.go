package server

import "golang.org/x/sys/unix"

// InMemory reports whether a folder's files are in memory alone, where flushing them
// costs nothing.
func InMemory(dir string) bool {
	var statfs_t unix.Statfs_t
	if err := unix.Statfs(dir, &statfs_t); err != nil {
		return false
	}
	return statfs_t.Type == unix.TMPFS_MAGIC || statfs_t.Type == unix.RAMFS_MAGIC
}
