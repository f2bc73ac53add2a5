import { Argument, Command } from 'commander';
import { flagsOf } from '../settings/flags.ts';
import {
  addClusterOptions,
  addNamespaceOption,
  addNamespacesOptions,
  addOperatorOptions,
  addOutputOption,
  addSettings,
} from './options.ts';

/**
 * Returns the command line of `vmwright`, which is also the kubectl plugin. Code of a command is loaded only when the
 * command is called, so that the operator does not load the other commands.
 * @param name how the user calls the program, for the help text
 */
export function createProgram(name: string): Command {
  const program = new Command(name)
    .description('Kubernetes operator for virtual machines on vSphere, on KubeVirt and in a private cloud.')
    .exitOverride()
    .configureOutput({ outputError: () => undefined }); // the caller prints errors
  addAdministration(program);
  addInspection(program);
  addOutputOption(
    addClusterOptions(
      program
        .command('version')
        .description('prints the version of this program and of the cluster')
        .option('--client', 'prints only the version of this program, and needs no cluster')
        .action(async (_, command: Command) => (await import('./version.ts')).version(command)),
    ),
  );
  program
    .command('completion')
    .description('prints a script that completes commands and flags in a shell')
    .addArgument(new Argument('<shell>', 'shell').choices(['bash', 'zsh', 'fish']))
    .action(async (shell: string) => {
      const { completionScript } = await import('./completion.ts');
      console.log(completionScript(program, shell));
    });
  return program;
}

function addAdministration(program: Command): void {
  program.commandsGroup('Operate:');
  addSettings(
    program
      .command('run')
      .description('runs the operator until SIGTERM or SIGINT')
      .addHelpText(
        'after',
        '\nA flag takes precedence over its variable, the variable over the config file, and the file over the default.',
      )
      .action(async (_, command: Command) => (await import('./run.ts')).run(flagsOf(command), command)),
  );
  addManifests(program);
  addSettings(
    addOutputOption(
      program
        .command('check')
        .description('checks access, permissions, CRDs, webhooks and backends; exit code 1 if a check fails')
        .option('--wait <time>', 'repeats the checks until all pass, at most for this time, such as 60s')
        .option(
          '--service-account [name]',
          'checks the permissions of this service account in the namespace of the operator instead of your own permissions (name: vmwright by default)',
        )
        .option('--mirror-config <file>', 'config file of ssvirt-vm-controller, to check its database')
        .action(async (_, command: Command) => (await import('./check.ts')).check(flagsOf(command), command)),
    ),
  );
  addSettings(
    addOutputOption(
      program
        .command('orphans')
        .description(
          'lists machines and folders that belong to no existing VM or VmGroup; takes the same settings as run',
        )
        .option(
          '--delete',
          'with --yes, deletes the listed machines and folders with an empty column KEPT-BECAUSE',
        )
        .option('--yes', 'confirms --delete; without --yes, nothing is deleted')
        .action(async (_, command: Command) =>
          (await import('./orphans.ts')).orphans(flagsOf(command), command),
        ),
    ),
  );
  const mirror = program.command('mirror').description('checks the mirror of KubeVirt VMs in PostgreSQL');
  addClusterOptions(
    mirror
      .command('verify')
      .description('compares cluster and table; exit code 1 if they differ, 2 if the comparison fails')
      .option('--config <file>', 'config file of ssvirt-vm-controller (default: /etc/ssvirt/config.yaml)')
      .option(
        '--wait <time>',
        'repeats the comparison until cluster and table agree, for at most this time',
        '0s',
      )
      .action(async (_, command: Command) => (await import('./mirror-verify.ts')).mirrorVerify(command)),
  );
}

function addManifests(program: Command): void {
  program
    .command('manifests')
    .description('prints the CRDs, roles, webhooks and network policies to apply before the operator starts')
    .option('--namespace <name>', 'namespace of the operator', 'vmwright-system')
    .option(
      '--namespaces <names>',
      'namespaces that the operator watches, separated by commas (default: all)',
    )
    .option(
      '--controllers <names>',
      'prints only the manifests of these controllers; same syntax as for run (default: all)',
    )
    .option('--webhook-url <url>', 'URL of the webhooks of an operator outside the cluster')
    .option(
      '--inject-ca-from <namespace/name>',
      'cert-manager Certificate with the CA that cert-manager injects (default: the operator injects its own CA)',
    )
    .option(
      '--api-servers <ranges>',
      'address ranges of the API servers (CIDR), separated by commas; adds a network policy that lets only these ranges call the webhooks',
    )
    .action(async (_, command: Command) => (await import('./manifests.ts')).printManifests(command));
}

function addInspection(program: Command): void {
  program.commandsGroup('Inspect:');
  const objects = (command: Command) => addClusterOptions(addOutputOption(addNamespaceOption(command)));
  addClusterOptions(
    addOperatorOptions(
      addOutputOption(
        addNamespacesOptions(
          program
            .command('status')
            .description('shows controllers, leader, backends, objects by state and what needs attention')
            .action(async (_, command: Command) => (await import('./status.ts')).status(command)),
        ),
      ),
    ),
  );
  objects(
    program
      .command('describe')
      .description('shows an object, its children and its machines as a tree')
      .argument('<kind/name>', 'such as vm/web, vmgroup/web, virtualmachine/web or vmdiskimage/base')
      .option(
        '--all',
        'shows each child on its own line, and also messages that repeat the message of the parent',
      )
      .action(async (target: string, _, command: Command) =>
        (await import('./describe.ts')).describe(target, command),
      ),
  );
  addOperatorOptions(
    objects(
      program
        .command('why')
        .description('explains what blocks an object and when the operator tries again')
        .argument('<kind/name>', 'such as vm/web')
        .action(async (target: string, _, command: Command) =>
          (await import('./why.ts')).why(target, command),
        ),
    ),
  );
  addClusterOptions(
    addOperatorOptions(
      addNamespacesOptions(
        program
          .command('bundle')
          .description('writes a support archive without Secrets and passwords')
          .option('-f, --file <path>', 'archive to write', 'vmwright-bundle.tar.gz')
          .action(async (_, command: Command) => (await import('./bundle.ts')).bundle(command)),
      ),
    ),
  );
  program.commandsGroup('Other:');
}
