/** `make assets`: every program of the testbed, found or made, before a test's clock starts. */
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
