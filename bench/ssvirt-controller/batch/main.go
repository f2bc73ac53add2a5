// Comparator of `make bench ONLY=mirror`: writes a status to every row of the table vms with batches of single-row updates,
// one round trip and one transaction per batch, as ACM's search-indexer does. Prints the duration in seconds.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

func main() {
	status := flag.String("status", "POWERED_ON", "status to write")
	size := flag.Int("size", 2500, "statements per batch")
	flag.Parse()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	rows, err := conn.Query(ctx, "SELECT id FROM vms ORDER BY id")
	if err != nil {
		log.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		log.Fatal(err)
	}
	started := time.Now()
	for chunk := range slices.Chunk(ids, *size) {
		batch := &pgx.Batch{}
		for _, id := range chunk {
			batch.Queue("UPDATE vms SET status = $2, updated_at = now() WHERE id = $1", id, *status)
		}
		if err := conn.SendBatch(ctx, batch).Close(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("took", time.Since(started).Seconds())
}
