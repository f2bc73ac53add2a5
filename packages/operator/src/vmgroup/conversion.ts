import type { ConversionRules } from '@vmwright/runtime';
import type { VERSIONS } from './resource.ts';

/**
 * Conversion between v1alpha1 and v1beta1. v1beta1 groups fields under `spec.placement` and `spec.update`; in v1alpha1,
 * they are direct fields of the spec. Both versions have the same information, so a round trip loses nothing.
 */
export const CONVERSION: ConversionRules<typeof VERSIONS> = {
  v1alpha1: {
    toStored: ({ spec, status }) => {
      const { updateStrategy: strategy, maxUnavailable, ...flat } = spec;
      const { vcenter, datacenter, folder, cluster, resourcePool, datastore, storagePolicy, ...rest } = flat;
      const placement = {
        ...(vcenter !== undefined && { vcenter }),
        ...(datacenter !== undefined && { datacenter }),
        ...(folder !== undefined && { folder }),
        ...(cluster !== undefined && { cluster }),
        ...(resourcePool !== undefined && { resourcePool }),
        ...(datastore !== undefined && { datastore }),
        ...(storagePolicy !== undefined && { storagePolicy }),
      };
      const update = {
        ...(strategy !== undefined && { strategy }),
        ...(maxUnavailable !== undefined && { maxUnavailable }),
      };
      return {
        spec: {
          ...rest,
          ...(Object.keys(placement).length > 0 && { placement }),
          ...(Object.keys(update).length > 0 && { update }),
        },
        ...(status && { status }),
      };
    },
    fromStored: ({ spec, status }) => {
      const { placement, update = {}, ...rest } = spec;
      const { strategy, maxUnavailable } = update;
      return {
        spec: {
          ...rest,
          ...placement,
          ...(strategy !== undefined && { updateStrategy: strategy }),
          ...(maxUnavailable !== undefined && { maxUnavailable }),
        },
        ...(status && { status }),
      };
    },
  },
};
