/**
 * `make assets`: downloads or builds the missing programs of the testbed, so that downloads and builds do not count
 * against test timeouts.
 */
import { messageOf } from '@vmwright/core';
import { Assets } from './assets.ts';
import { bundles } from './catalog.ts';

const assets = new Assets();
try {
  for (const { programs } of bundles) for (const program of programs.keys()) await assets.path(program);
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}
