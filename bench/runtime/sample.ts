import { foreignKind, type KubeObject } from '@vmwright/runtime';

export interface Sample extends KubeObject {
  readonly spec?: { readonly text?: string };
  readonly status?: { readonly phase?: string; readonly message?: string };
}

export const Sample = foreignKind<Sample>({
  group: 'bench.vmwright.dev',
  version: 'v1',
  kind: 'Sample',
  plural: 'samples',
  scope: 'Namespaced',
});

const text = { type: 'string' };

export const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'samples.bench.vmwright.dev' },
  spec: {
    group: 'bench.vmwright.dev',
    scope: 'Namespaced',
    names: { kind: 'Sample', plural: 'samples', singular: 'sample' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { text } },
              status: { type: 'object', properties: { phase: text, message: text } },
            },
          },
        },
      },
    ],
  },
};
