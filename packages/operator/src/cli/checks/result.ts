/** Result of one check. */
export interface CheckResult {
  /** What was checked: `crd vms.samplecontroller.k8s.io`. */
  readonly name: string;
  /** `skipped`: the check was not possible or not needed, which is not a failure. */
  readonly state: 'passed' | 'failed' | 'skipped';
  readonly detail: string;
  /** What to do about a failure. */
  readonly remedy?: string;
}

export function passed(name: string, detail: string): CheckResult {
  return { name, state: 'passed', detail };
}

export function failed(name: string, detail: string, remedy: string): CheckResult {
  return { name, state: 'failed', detail, remedy };
}

export function skipped(name: string, detail: string): CheckResult {
  return { name, state: 'skipped', detail };
}
