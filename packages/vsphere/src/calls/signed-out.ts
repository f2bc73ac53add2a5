import { FaultError, isA } from '../faults.ts';
import type { Method } from '../soap/envelope.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';

type Missing = readonly Vim25['MissingProperty'][] | undefined;

/**
 * Without a session properties are not refused: they are answered as missing, each for want of one. Whoever took that
 * for "not there" would take every machine for gone.
 */
export function refuseIfSignedOut(method: Method, result: unknown): void {
  for (const missing of missingIn(method, result)) {
    for (const { fault } of missing ?? []) {
      if (!isA(fault.fault, 'NotAuthenticated')) continue;
      throw new FaultError(method, 'NotAuthenticated', fault.fault, fault.localizedMessage ?? '');
    }
  }
}

function missingIn(method: Method, result: unknown): Missing[] {
  if (method === 'WaitForUpdatesEx' && isUpdates(result))
    return (result.filterSet ?? []).flatMap((filter) =>
      (filter.objectSet ?? []).map((each) => each.missingSet),
    );
  if (/Retrieve.*Ex$/.test(method) && isRetrieved(result))
    return result.objects.map((each) => each.missingSet);
  return [];
}

function isUpdates(result: unknown): result is Vim25['UpdateSet'] {
  return typeof result === 'object' && result !== null && 'version' in result;
}

function isRetrieved(result: unknown): result is Vim25['RetrieveResult'] {
  return typeof result === 'object' && result !== null && 'objects' in result;
}
