import type { Row } from '../bar.ts';
import { endToEnd } from './end-to-end.ts';
import { lag } from './lag.ts';
import { build } from './programs.ts';
import { scale } from './scale.ts';
import { writer } from './writer.ts';

/**
 * Compares the status mirror with a controller that writes one row at a time. Also compares the mirror's batch
 * statement with other ways to write rows. The compared programs use the same API server and the same database, one
 * after the other. PostgreSQL runs with fsync.
 */
export async function* mirror(part?: string): AsyncGenerator<Row> {
  const programs = await build();
  for (const measure of [writer, endToEnd, lag, scale])
    if (part === undefined || part === measure.name) yield* measure(programs);
}
