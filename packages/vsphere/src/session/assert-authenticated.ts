import { FaultError, isA } from '../faults.ts';
import type { Method } from '../soap/envelope.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';

type MissingSet = readonly Vim25['MissingProperty'][] | undefined;

/**
 * Throws when a response shows that the session has ended. A read of properties does not fail in that case: vCenter
 * lists the properties as missing, with the fault NotAuthenticated. If they were treated as unset, every machine would
 * look deleted.
 * @throws FaultError `NOT_AUTHENTICATED`
 */
export function assertAuthenticated(method: Method, result: unknown): void {
  for (const missingSet of missingSets(method, result)) {
    for (const { fault } of missingSet ?? []) {
      if (!isA(fault.fault, 'NotAuthenticated')) continue;
      throw new FaultError(method, 'NotAuthenticated', fault.fault, fault.localizedMessage ?? '');
    }
  }
}

function missingSets(method: Method, result: unknown): MissingSet[] {
  if (method === 'WaitForUpdatesEx' && isUpdateSet(result))
    return (result.filterSet ?? []).flatMap((filter) =>
      (filter.objectSet ?? []).map(({ missingSet }) => missingSet),
    );
  if (/Retrieve.*Ex$/.test(method) && isRetrieveResult(result))
    return result.objects.map(({ missingSet }) => missingSet);
  return [];
}

function isUpdateSet(result: unknown): result is Vim25['UpdateSet'] {
  return typeof result === 'object' && result !== null && 'version' in result;
}

function isRetrieveResult(result: unknown): result is Vim25['RetrieveResult'] {
  return typeof result === 'object' && result !== null && 'objects' in result;
}
