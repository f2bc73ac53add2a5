import { type CloudClient, InvalidRequestError, NameTakenError, ProhibitedNameError } from '@vmwright/cloud';
import { type AdmissionRules, allow, deny, type Logger } from '@vmwright/runtime';
import { deletionPolicyOf } from '../annotations.ts';
import { ignoreNotFound, toCondition } from './errors.ts';
import { taken } from './observe.ts';
import type { VM } from './resource.ts';

const TIMEOUT_SECONDS = 10;
/** Both calls, and the way to the API server, fit into that. */
const [CHECK_MS, HOLDER_MS] = [7_000, 1_500];

/**
 * Rejects a VM with a name that the cloud does not accept before the object exists. The user waits for the answer, so
 * the cloud is asked once, and not for longer than the API server waits.
 * @param cloud undefined for manifests, which need the rules and no answers
 */
export function admitVms(
  cloud: Pick<CloudClient, 'check' | 'get'> | undefined,
  cluster: string,
  log: Logger,
): AdmissionRules<VM> {
  return {
    operations: ['CREATE'],
    failurePolicy: 'Fail',
    timeoutSeconds: TIMEOUT_SECONDS,
    validate: async (vm, { signal }) => {
      const policy = deletionPolicyOf(vm);
      if (typeof policy === 'object') return deny(policy.problem);
      const { vmname } = vm.spec;
      try {
        await cloud?.check(vmname, { signal, timeoutMs: CHECK_MS, tries: 1 });
        return allow();
      } catch (error) {
        if (error instanceof NameTakenError) {
          const { serverId } = error;
          const options = { signal, timeoutMs: HOLDER_MS, tries: 1 };
          const get = serverId === undefined ? undefined : cloud?.get(serverId, options);
          const holder = await ignoreNotFound(get ?? Promise.resolve(undefined)).catch(() => undefined);
          return deny(
            holder === undefined
              ? `The name "${vmname}" is already used. Choose another vmname`
              : taken(cluster, vm, holder).message,
          );
        }
        if (error instanceof ProhibitedNameError || error instanceof InvalidRequestError)
          return deny(error.detail);
        log.warn({ vmname, error: String(error) }, 'Checking a name with the cloud failed');
        const { message = 'The operator failed to ask the cloud' } = toCondition(error) ?? {};
        return deny(
          `The vmname "${vmname}" could not be checked. ${message.replace(RETRYING, '')}. Try again later`,
          { code: 503 },
        );
      }
    },
  };
}

/** The operator retries a reconcile; a request to the API server is the user's to retry. */
const RETRYING = '; retrying automatically';
