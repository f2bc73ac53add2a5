import {
  type CloudClient,
  InvalidRequestError,
  NameTakenError,
  ProhibitedNameError,
  UnauthorizedError,
} from '@vmwright/cloud';
import { type AdmissionRules, allow, deny, type Logger } from '@vmwright/runtime';
import { deletionPolicyOf } from '../annotations.ts';
import { SettingsError } from '../settings/values.ts';
import type { VM } from './resource.ts';
import { asksForTime } from './trouble.ts';

const TIMEOUT_SECONDS = 10;

/**
 * A name that the cloud does not accept is refused before the object exists. Who asks waits for the answer, so it is
 * sought once, and not for longer than the API server waits.
 */
export function admitVms(cloud: Pick<CloudClient, 'check'>, log: Logger): AdmissionRules<VM> {
  return {
    operations: ['CREATE'],
    failurePolicy: 'Fail',
    timeoutSeconds: TIMEOUT_SECONDS,
    validate: async (vm, { signal }) => {
      const policy = deletionPolicyOf(vm);
      if (typeof policy === 'object') return deny(policy.problem);
      const { vmname } = vm.spec;
      try {
        await cloud.check(vmname, { signal, timeoutMs: (TIMEOUT_SECONDS - 2) * 1_000, tries: 1 });
        return allow();
      } catch (error) {
        const isRefusal =
          error instanceof ProhibitedNameError ||
          error instanceof NameTakenError ||
          error instanceof InvalidRequestError;
        if (isRefusal) return deny(error.detail);
        log.warn({ vmname, error: String(error) }, 'the cloud could not be asked about a name');
        return deny(`the cloud could not be asked about the vmname ${vmname}: ${why(error)}`, { code: 503 });
      }
    },
  };
}

/** For who may create objects, which is not who runs the operator: no settings, no files. */
function why(error: unknown): string {
  if (error instanceof UnauthorizedError) return "it does not accept the operator's API key";
  if (error instanceof SettingsError) return "the operator's API key cannot be read";
  return asksForTime(error) ? 'it asks for time; try again' : 'it does not answer; try again';
}
