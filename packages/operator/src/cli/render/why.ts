import { table } from '../../table.ts';
import type { Explanation } from '../explain.ts';
import type { Paint } from '../output.ts';

export function renderExplanation(explanation: Explanation, paint: Paint): string {
  const { object, isBlocked, blockers, retry, nodes, events } = explanation;
  const blocked = blockers.map(({ reason, message }) => `  ${paint('red', reason)}: ${message}`);
  const parts = [
    isBlocked ? `${paint('bold', object)} is blocked by\n${blocked.join('\n')}` : paint('bold', object),
    retry,
    ...(nodes.length === 0
      ? []
      : [
          `${paint('bold', 'Nodes')}\n${table(
            [
              ['NODE', 'HOST', 'SUITABLE', 'REASON', 'MESSAGE'],
              ...nodes.map(({ node, host, isSuitable, reason, message }) => [
                ...[node, host, isSuitable ? 'yes' : 'no', reason || '-', message],
              ]),
            ],
            '  ',
          )}`,
        ]),
    ...(events.length === 0
      ? []
      : [
          `${paint('bold', 'Recent warnings')}\n${table(
            events.map(({ age, reason, note }) => [age, reason, note]),
            '  ',
          )}`,
        ]),
  ];
  return parts.join('\n\n');
}
