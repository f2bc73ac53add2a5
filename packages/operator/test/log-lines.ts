import { readFile } from 'node:fs/promises';
import { field, type Part } from '@vmwright/testbed';

/** Returns the JSON lines of a process's log. Leaves out the last line if the process has not written it completely. */
export async function logLines(part: Part): Promise<readonly unknown[]> {
  const lines = (await readFile(part.log, 'utf8')).split('\n').slice(0, -1);
  return lines.filter((line) => line.startsWith('{')).map((line): unknown => JSON.parse(line));
}

/** Returns the audit lines about an object. @param object its key: `namespace/name` */
export async function auditLines(part: Part, object: string): Promise<readonly unknown[]> {
  return (await logLines(part)).filter(
    (line) => field(line, 'audit') !== undefined && field(line, 'object') === object,
  );
}
