import { ageText } from '../../age.ts';
import type { OperatorStatus } from '../../enabled-controllers.ts';
import { table } from '../../table.ts';
import type { Leader } from '../leader.ts';
import type { Paint } from '../output.ts';
import { type Attention, type Summary, usedStates } from '../summary.ts';

export interface StatusReport extends Summary {
  readonly operator: OperatorStatus | { readonly problem: string };
  readonly leader: Leader;
}

/** Maximum number of objects that one line of the section "Needs attention" names. */
const MOST_NAMED = 3;

/** @param now milliseconds since 1970 */
export function renderStatus(report: StatusReport, now: number, paint: Paint): string {
  const { operator, leader, kinds, backends, attention } = report;
  const states = usedStates(kinds);
  const sections: (readonly [title: string, body: string])[] = [
    ['Operator', `  ${operatorText(operator)}\n  ${leaderText(leader, now)}`],
    ...('problem' in operator ? [] : [['Controllers', controllersText(operator)] as const]),
    ...(backends.length === 0
      ? []
      : [
          [
            'Backends',
            table(
              backends.map(({ name, isAvailable, message }) => [
                name,
                isAvailable ? 'available' : 'unavailable',
                message,
              ]),
              '  ',
            ),
          ] as const,
        ]),
    [
      'Objects',
      table(
        [
          ['KIND', 'TOTAL', ...states.map((state) => state.toUpperCase())],
          ...kinds.map(({ kind, total, states: counts, problem }) =>
            problem === undefined
              ? [kind, String(total), ...states.map((state) => String(counts[state]))]
              : [kind, '-', problem],
          ),
        ],
        '  ',
      ),
    ],
    [
      'Needs attention',
      attention.length === 0
        ? '  nothing'
        : attention.map((each) => attentionText(each, now, paint)).join('\n'),
    ],
  ];
  return sections.map(([title, body]) => `${paint('bold', title)}\n${body}`).join('\n\n');
}

function operatorText(operator: StatusReport['operator']): string {
  if ('problem' in operator) return `controllers are not known: ${operator.problem}`;
  return `vmwright ${operator.version} (${operator.revision})`;
}

function leaderText({ holder, renewedAt, isExpired, problem }: Leader, now: number): string {
  if (problem !== undefined) return `leader is not known: ${problem}`;
  if (holder === undefined) return 'no replica leads; check that the operator runs';
  const renewed = renewedAt === undefined ? '' : ` (last renewed the Lease ${ageText(now - renewedAt)} ago)`;
  return isExpired
    ? `no replica leads: ${holder} has stopped${renewed}; check that the operator runs`
    : `leader ${holder}${renewed}`;
}

function controllersText({ controllers }: OperatorStatus): string {
  return table(
    controllers.map(({ name, state, why = '', remedy = '' }) => [
      name,
      state,
      state === 'on' ? '' : `${why}; ${remedy}`,
    ]),
    '  ',
  );
}

function attentionText(
  { kind, state, reason, message, objects, since }: Attention,
  now: number,
  paint: Paint,
): string {
  const named = objects.slice(0, MOST_NAMED).join(', ');
  const more = objects.length > MOST_NAMED ? ` and ${objects.length - MOST_NAMED} more` : '';
  const age = since === '' ? '' : ` for ${ageText(now - Date.parse(since))}`;
  const head = `${kind} ${named}${more}: ${paint(state === 'Stalled' ? 'red' : 'yellow', state)}${age}`;
  return `  ${head}\n    ${reason}: ${message}`;
}
