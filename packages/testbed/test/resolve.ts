/** Program that resolves one asset and prints its path. `assets.test.ts` starts it concurrently, or kills it. */
import { Assets } from '../src/assets/assets.ts';
import { bundles } from '../src/assets/catalog.ts';

const wanted = bundles
  .flatMap(({ programs }) => [...programs.keys()])
  .find((program) => program === process.argv[2]);
if (wanted === undefined) throw new Error(`no program ${process.argv[2]}`);
console.log(await new Assets().path(wanted));
