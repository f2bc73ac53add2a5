import { field, type KubeObject } from '../../kubernetes/api.ts';

/** Status of a DataVolume that the stand-in for CDI reports. */
export interface VolumeReport {
  readonly phase: string;
  readonly progress?: string;
  /** Number of restarts of the importer. */
  readonly restartCount?: number;
  readonly running?: ConditionReport;
  /** Condition Bound. @default derived from the claim */
  readonly bound?: ConditionReport;
}

export interface ConditionReport {
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/** Condition Running while the importer's container runs. */
export const POD_RUNNING: ConditionReport = { status: 'True', reason: 'Pod is running', message: '' };

/** Returns the condition Running with the status False. */
export function notRunning(reason: string, message: string): ConditionReport {
  return { status: 'False', reason, message };
}

/** Returns the status of a DataVolume with the conditions that CDI sets: Bound, Ready and Running. */
export function statusOf(
  volume: KubeObject | undefined,
  claim: KubeObject | undefined,
  { phase, progress, restartCount, running = notRunning('', ''), bound = boundOf(claim) }: VolumeReport,
  now: Date,
): object {
  const succeeded = phase === 'Succeeded';
  const ready: ConditionReport = {
    status: succeeded ? 'True' : 'False',
    reason: running.status === 'True' ? 'TransferRunning' : '',
    message: '',
  };
  const conditions = Object.entries({ Bound: bound, Ready: ready, Running: running });
  return {
    phase,
    claimName: volume?.metadata.name,
    ...(progress !== undefined && { progress }),
    ...(restartCount !== undefined && { restartCount }),
    conditions: conditions.map(([type, condition]) => withTimes(volume, type, condition, now)),
  };
}

function boundOf(claim: KubeObject | undefined): ConditionReport {
  if (claim === undefined) return { status: 'False', reason: 'NotFound', message: 'No PVC found' };
  const bound = field(claim, 'status', 'phase') === 'Bound';
  const reason = bound ? 'Bound' : 'Pending';
  return { status: bound ? 'True' : 'False', reason, message: `PVC ${claim.metadata.name} ${reason}` };
}

/** Adds the times to a condition. Its transition time changes only if its status (`True` or `False`) changes. */
function withTimes(
  volume: KubeObject | undefined,
  type: string,
  condition: ConditionReport,
  date: Date,
): object {
  const now = date.toISOString().replace(/\.\d+/, '');
  const conditions = field(volume, 'status', 'conditions');
  const previous: unknown = Array.isArray(conditions)
    ? conditions.find((each) => field(each, 'type') === type)
    : undefined;
  const unchanged = field(previous, 'status') === condition.status;
  const lastTransitionTime = (unchanged && field(previous, 'lastTransitionTime')) || now;
  return { type, ...condition, lastTransitionTime, lastHeartbeatTime: now };
}
