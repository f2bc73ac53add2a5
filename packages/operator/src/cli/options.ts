import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ClusterOptions } from '../access.ts';
import { defaultOf, isFlag, OPTIONS, optionOf } from '../settings/flags.ts';
import { FLAGS, type FlagDescription, GROUPS } from '../settings/table.ts';

/* Options that several commands share. */

const CLUSTER = 'Cluster:';

export function addClusterOptions(command: Command): Command {
  return command
    .addOption(new Option('--kubeconfig <file>', 'kubeconfig of the cluster').helpGroup(CLUSTER))
    .addOption(new Option('--context <name>', 'context of the kubeconfig').helpGroup(CLUSTER));
}

export function addNamespaceOption(command: Command): Command {
  return command.option(
    '-n, --namespace <name>',
    'namespace of the object (default: namespace of the context)',
  );
}

export function addNamespacesOptions(command: Command): Command {
  return command
    .option('-n, --namespace <name>', 'only objects of this namespace')
    .option('-A, --all-namespaces', 'objects of all namespaces; the default');
}

export function addOutputOption(command: Command): Command {
  return command.addOption(
    new Option('-o, --output <format>', 'json: machine-readable output').choices(['json']),
  );
}

export function addOperatorOptions(command: Command): Command {
  return command
    .option('--operator-namespace <name>', 'namespace of the operator', 'vmwright-system')
    .addOption(
      new Option(
        '--operator-url <url>',
        "address of the operator's status server, such as http://127.0.0.1:8080 (default: a pod of the operator, through the API server)",
      ).env('VMWRIGHT_OPERATOR_URL'),
    );
}

/** Adds all settings of `vmwright run`, under the headings of `settings/table.ts`. */
export function addSettings(command: Command): Command {
  const flags = Object.keys(OPTIONS).filter(isFlag);
  for (const group of GROUPS)
    for (const flag of flags.filter((each) => FLAGS[each].group === group))
      command.addOption(optionOf(flag, helpText(FLAGS[flag], defaultOf(flag))).helpGroup(`${group}:`));
  return addClusterOptions(command);
}

/** Returns the help text of a setting: its description without Markdown, its default and its environment variable. */
function helpText({ description, byDefault, variable }: FlagDescription, constant: string): string {
  const notes = [
    ...(constant || (byDefault ?? 'none') !== 'none' ? [`default: ${constant || byDefault}`] : []),
    ...(variable === undefined ? [] : [`variable: ${variable}`]),
  ];
  const text = `${description}${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`;
  return text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '');
}

export function textOption(command: Command, name: string): string | undefined {
  const value: unknown = command.getOptionValue(name);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function isSet(command: Command, name: string): boolean {
  return command.getOptionValue(name) === true;
}

export function isJson(command: Command): boolean {
  return textOption(command, 'output') === 'json';
}

export function clusterOptions(command: Command): ClusterOptions {
  return { kubeconfig: textOption(command, 'kubeconfig'), context: textOption(command, 'context') };
}

/** Returns the namespace to list; undefined for all. @throws InvalidArgumentError if both -n and -A are given */
export function namespaceOption(command: Command): string | undefined {
  const namespace = textOption(command, 'namespace');
  if (namespace !== undefined && isSet(command, 'allNamespaces'))
    throw new InvalidArgumentError('-n and -A are both given; give one of them');
  return namespace;
}
