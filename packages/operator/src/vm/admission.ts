import { type CloudClient, InvalidRequestError, NameTakenError, ProhibitedNameError } from '@vmwright/cloud';
import { type AdmissionRules, allow, deny, type Logger } from '@vmwright/runtime';
import { deletionPolicyOf } from '../annotations.ts';
import { toCondition } from './errors.ts';
import { taken } from './observe.ts';
import type { VM } from './resource.ts';

const TIMEOUT_SECONDS = 10;
/**
 * Timeouts of two requests to the cloud. The first request checks the name. If the name is taken, the second one reads
 * the server that uses it. The sum is less than `TIMEOUT_SECONDS`.
 */
const [CHECK_MS, GET_MS] = [7_000, 1_500];

/**
 * Returns the admission rules of VMs. They reject a name that the cloud does not accept, and an unknown deletion
 * policy. The user waits for the answer, so each request to the cloud has a short timeout and is tried only once.
 * @param cloud undefined if only the manifests of the rules are needed
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
          const options = { signal, timeoutMs: GET_MS, tries: 1 };
          const holder = await cloud?.get(error.serverId, options).catch(() => undefined);
          return deny(
            holder === undefined
              ? `The name "${vmname}" is already used. Choose another vmname`
              : taken(cluster, vm, holder).message,
          );
        }
        if (error instanceof ProhibitedNameError || error instanceof InvalidRequestError)
          return deny(error.detail);
        log.warn({ vmname, error: String(error) }, 'Checking a name in the cloud failed');
        const { message = 'The request to the cloud failed' } = toCondition(error) ?? {};
        return deny(
          `The vmname "${vmname}" could not be checked. ${message.replace(RETRYING, '')}. Try again later`,
          { code: 503 },
        );
      }
    },
  };
}

/** Suffix of status messages. It is removed here, because the operator does not retry a rejected admission request. */
const RETRYING = '; retrying automatically';
