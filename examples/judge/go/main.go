// Histories of bsm/redislock: go run . URL FOLDER.
package main

import (
	"context"
	"fmt"
	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"
	"os"
	"sync"
	"time"
)

const key, lease, boot = "pybench-judge:redislock", 2 * time.Second, "/proc/sys/kernel/random/boot_id"

// Go's own clock does not show the time of CLOCK_MONOTONIC.
func now() int64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at)
	return at.Nano()
}
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func work(client *redis.Client, path string) {
	ctx, file, locker := context.Background(), must(os.Create(path)), redislock.New(client)
	fmt.Fprintf(file, `{"pybench_history":1,"clock":"monotonic","boot_id":"%s","lock":"bsm/redislock"}`+"\n", must(os.ReadFile(boot))[:36])
	write := func(event, more string) {
		fmt.Fprintf(file, `{"t":%d,"client":"worker","event":"%s","key":"%s"%s}`+"\n", now(), event, key, more)
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		write("acquire", "")
		until := now() + int64(lease)                    // Counted from before the attempt is sent.
		lock, err := locker.Obtain(ctx, key, lease, nil) // Without options, one attempt.
		if err != nil {
			write("gave-up", "")
			continue
		}
		write("granted", fmt.Sprintf(`,"until":%d`, until))
		time.Sleep(time.Millisecond)
		write("released", "") // Before the release is sent.
		if lock.Release(ctx) != nil && now() < until {
			write("denied", "")
		}
	}
}

func main() {
	client, all := redis.NewClient(must(redis.ParseURL(os.Args[1]))), sync.WaitGroup{}
	for number := range 8 {
		all.Go(func() { work(client, fmt.Sprintf("%s/redislock-%d.jsonl", os.Args[2], number)) })
	}
	all.Wait()
}
