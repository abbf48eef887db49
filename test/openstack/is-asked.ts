/**
 * Whether tests run against OpenStack's own services and clients. `npm run test:openstack` installs them and asks for it; other runs do not use what
 * happens to be installed, since these services take long on a busy machine.
 */
export const isAsked = process.env.BERTH_TEST_OPENSTACK === "true";
