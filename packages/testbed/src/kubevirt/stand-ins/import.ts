import { notRunning, POD_RUNNING } from './data-volume-status.ts';
import type { ImportSource } from './import-behaviour.ts';
import type { PopulatedVolume } from './populated-volume.ts';

const PROGRESS = ['0.0%', '25.4%', '61.0%', '92.7%'];

const BACKOFF_STEPS = 3;

/**
 * Stand-in for CDI's importer: goes through the phases of an import without copying data. After an error, the importer
 * starts again, like the container of CDI's importer pod.
 * @param isFirst whether this is the first DataVolume with this URL
 */
export async function importData(
  volume: PopulatedVolume,
  source: ImportSource,
  isFirst: boolean,
): Promise<'succeeded' | 'failed'> {
  await volume.report({ phase: 'ImportScheduled', progress: 'N/A' });
  await volume.step();
  for (let restartCount = volume.restartCount; ; restartCount++) {
    const result = await runImporter(volume, restartCount, isFirst);
    if (result === 'succeeded') return result;
    const message = volume.behaviour.message?.(source) ?? 'Unable to process data: unexpected EOF';
    const running = notRunning('Error', message);
    await volume.report({
      phase: result === 'failed' ? 'Failed' : 'ImportInProgress',
      restartCount,
      running,
    });
    if (result === 'failed') return result;
    for (let step = 0; step < BACKOFF_STEPS; step++) await volume.step();
  }
}

/** Runs the importer's container once. */
async function runImporter(
  volume: PopulatedVolume,
  restartCount: number,
  isFirst: boolean,
): Promise<'succeeded' | 'failed' | 'crashed'> {
  const phase = 'ImportInProgress';
  const crashes = () => restartCount < (volume.behaviour.crashes ?? 0);
  if (crashes() && !volume.behaviour.crashesLate) {
    await volume.report({ phase, restartCount, running: POD_RUNNING });
    await volume.step();
    return 'crashed';
  }
  for (const progress of PROGRESS) {
    await volume.report({ phase, progress, restartCount, running: POD_RUNNING });
    await volume.step();
    const { fails } = volume.behaviour;
    if (fails === 'always' || (fails === 'first' && isFirst)) return 'failed';
    await volume.until(() => !volume.behaviour.hangs);
  }
  return crashes() ? 'crashed' : 'succeeded';
}
