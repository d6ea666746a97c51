package results

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"holdfast/internal/crawl"
)

// askBatch is the number of keys that one call of Confirmed carries.
const askBatch = 500

// Reconcile cleans the record files of a run: a torn tail is cut, a line whose
// record is confirmed in another file is dropped, a key's second line in a file
// too. What is confirmed nowhere stays: its request is still on its way. Files
// that another live process holds are left to it; of this process's own open
// files only lines confirmed elsewhere are taken.
//
// A crash in the middle leaves every file either as it was or cleaned.
func (l *Local) Reconcile(ctx context.Context, campaign string, run int, confirmed Confirmed) error {
	dir, err := runPath(campaign, run)
	if err != nil {
		return err
	}
	files, err := recordFiles(l.root, dir, All)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list record files: %w", err)
	}
	var errs []error
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if err := l.reconcileFile(ctx, dir, file, confirmed); err != nil {
			errs = append(errs, fmt.Errorf("reconcile %s: %w", file, err))
		}
	}
	return errors.Join(errs...)
}

func (l *Local) reconcileFile(ctx context.Context, dir, file string, confirmed Confirmed) error {
	name := path.Join(dir, file)
	h, err := hold(l.root, name)
	if errors.Is(err, errBusy) {
		return l.reconcileOwn(ctx, dir, file, confirmed)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	found, err := survey(ctx, h.f, file, confirmed)
	switch {
	case err != nil:
	case found.unclean:
		h, _, err = l.rewrite(h, name, found.drop)
	case found.torn:
		if err = h.f.Truncate(found.size); err == nil {
			err = l.sync(h.f)
		}
	}
	return errors.Join(err, h.close())
}

// reconcileOwn treats a file that is held: if it is held here, its writer takes
// out what is confirmed elsewhere, between two appends.
func (l *Local) reconcileOwn(ctx context.Context, dir, file string, confirmed Confirmed) error {
	st, _ := streamOfFile(file)
	key := streamKey{run: dir, stream: st}
	s := l.openStream(key)
	if s == nil {
		return nil
	}
	mine := false
	_, err := s.run(ctx, &op{do: func(s *stream) error {
		mine = s.h != nil && s.name == file
		return nil
	}})
	if errors.Is(err, errStreamClosed) || err == nil && !mine {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := l.root.Open(path.Join(dir, file))
	if err != nil {
		return err
	}
	found, err := survey(ctx, f, file, confirmed)
	if err = errors.Join(err, f.Close()); err != nil || len(found.drop) == 0 {
		return err
	}
	return l.dropFrom(ctx, key, file, found.drop)
}

// findings are what survey learnt of a file.
type findings struct {
	drop    map[crawl.RecordKey]bool // confirmed in another file
	unclean bool                     // some whole line has to go
	torn    bool
	size    int64 // of the whole lines
}

// survey reads a file and asks where its records are confirmed. Its memory is
// some 40 bytes a line, of files whose size is bounded.
func survey(ctx context.Context, f *os.File, file string, confirmed Confirmed) (findings, error) {
	info, err := f.Stat()
	if err != nil {
		return findings{}, err
	}
	found := findings{drop: make(map[crawl.RecordKey]bool)}
	s := sieve{seen: make(map[[16]byte]struct{})}
	batch := make([]crawl.RecordKey, 0, askBatch)
	ask := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		in, err := confirmed(batch)
		if err != nil {
			return fmt.Errorf("ask for confirmations: %w", err)
		}
		if len(in) != len(batch) {
			return fmt.Errorf("ask for confirmations: %d answers to %d keys", len(in), len(batch))
		}
		for i, where := range in {
			if where != "" && where != file {
				found.drop[batch[i]] = true
			}
		}
		batch = batch[:0]
		return nil
	}
	found.size, found.torn, err = lines(io.NewSectionReader(f, 0, info.Size()), func(line []byte) error {
		if !s.keeps(line) {
			found.unclean = true
			return nil
		}
		if key, ok := keyOf(line); ok {
			batch = append(batch, key)
		}
		if len(batch) == askBatch {
			return ask()
		}
		return nil
	})
	if err == nil {
		err = ask()
	}
	found.unclean = found.unclean || len(found.drop) > 0
	return found, err
}
