import { type Client, foreignKind, type KubeObject, messageOf, nodeWorld } from '@vmwright/runtime';
import { NAME } from '../declarations.ts';
import type { ControllerState, OperatorStatus } from '../enabled-controllers.ts';
import { CONTROLLERS } from '../settings/controllers.ts';
import { SettingsError } from '../settings/values.ts';
import { at, listAt, textAt } from './fields.ts';

const Pod = foreignKind<KubeObject>({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  scope: 'Namespaced',
});

/** Default port of `--status-address`. */
const STATUS_PORT = 8080;

/** How to reach the operator's status server. */
export interface OperatorLocation {
  readonly namespace: string;
  /** Address of the status server. @default a pod of the operator, through the proxy of the API server */
  readonly url?: string | undefined;
}

/** Returns the operator's pods, by the label that its Service and its network policy select. */
export async function operatorPods(client: Client, namespace: string): Promise<readonly KubeObject[]> {
  return (await client.list(Pod, { namespace, labelSelector: `app.kubernetes.io/name=${NAME}` })).items;
}

/** Reads a path of the operator's status server. @throws Error with the remedy if it cannot be reached */
export async function readOperator(
  client: Client,
  { namespace, url }: OperatorLocation,
  path: string,
): Promise<string> {
  if (url !== undefined) return readDirectly(url, path);
  const [pod] = await operatorPods(client, namespace);
  if (pod === undefined)
    throw new Error(
      `no pod of the operator runs in the namespace ${namespace}; set --operator-namespace, or --operator-url if it runs outside the cluster`,
    );
  return client.raw(`/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}:${STATUS_PORT}/proxy${path}`);
}

async function readDirectly(url: string, path: string): Promise<string> {
  if (!URL.canParse(url))
    throw new SettingsError(`--operator-url is "${url}"; it must be a URL such as http://127.0.0.1:8080`);
  const transport = nodeWorld.connect({ origin: new URL(url).origin });
  try {
    const response = await transport.request({ method: 'GET', path, headers: {} });
    const text = await response.text();
    if (response.status === 200) return text;
    throw new Error(`${url}${path} answered ${response.status}`);
  } catch (error) {
    throw new Error(`${messageOf(error)}; check --operator-url`, { cause: error });
  } finally {
    await transport.close();
  }
}

/** Reads and validates the operator's `/status`. */
export async function readStatus(client: Client, location: OperatorLocation): Promise<OperatorStatus> {
  const value: unknown = JSON.parse(await readOperator(client, location, '/status'));
  return {
    version: textAt(value, 'version'),
    revision: textAt(value, 'revision'),
    controllers: listAt(value, 'controllers').flatMap((each): readonly ControllerState[] => {
      const name = CONTROLLERS.find((known) => known === at(each, 'name'));
      if (name === undefined) return [];
      const [why, remedy] = [textAt(each, 'why'), textAt(each, 'remedy')];
      return [{ name, state: textAt(each, 'state') === 'on' ? 'on' : 'off', why, remedy }];
    }),
  };
}
