import { type CloudClient, InvalidRequestError, NameTakenError, ProhibitedNameError } from '@vmwright/cloud';
import { type AdmissionRules, allow, deny } from '@vmwright/runtime';
import type { VM } from './resource.ts';

const TIMEOUT_SECONDS = 10;

/**
 * A name that the cloud does not accept is refused before the object exists. Who asks waits for the answer, so it is
 * sought once, and not for longer than the API server waits.
 */
export function admitVms(cloud: Pick<CloudClient, 'check'>): AdmissionRules<VM> {
  return {
    operations: ['CREATE'],
    failurePolicy: 'Fail',
    timeoutSeconds: TIMEOUT_SECONDS,
    validate: async ({ spec }, { signal }) => {
      try {
        await cloud.check(spec.vmname, { signal, timeoutMs: (TIMEOUT_SECONDS - 2) * 1_000, tries: 1 });
        return allow();
      } catch (error) {
        const isRefusal =
          error instanceof ProhibitedNameError ||
          error instanceof NameTakenError ||
          error instanceof InvalidRequestError;
        if (isRefusal) return deny(error.detail);
        return deny(
          `the cloud could not be asked about the vmname ${spec.vmname}: it does not answer; try again`,
          {
            code: 503,
          },
        );
      }
    },
  };
}
