package sqlstore

import "strings"

// MySQL is the dialect of MySQL 8 and MariaDB 10.6 and newer, with the storage engine InnoDB.
//
// Its era is the identity of the server (server_uuid of MySQL; server_id, hostname and port of
// MariaDB, where servers that replicate have different values of server_id). It changes when
// another server takes over. With Galera it is the name of the cluster, because all its nodes share
// one history. If the table is named without a schema, the era also includes the session's
// database.
//
// A former primary that takes over again has its former era, and may lack writes of the primary
// that served in between. So a Store of this dialect takes the first state of an election that it
// reads after it was opened, or after the era changed, as unproven: members wait one lease, unless
// they see a leader renew. With [WithEra] a Store does not do that, so the value of that expression
// must never recur.
func MySQL() Dialect {
	return Dialect{
		name:  "MySQL",
		quote: "`",
		// A former primary that takes over again has its former era, and may lack the writes of the
		// primary that served in between.
		recurs: true,
		// Only MariaDB executes the comments that begin with /*M!, and only MySQL the others.
		era: `concat(/*M! if(@@wsrep_on, concat('galera/', replace(@@wsrep_cluster_name, ' ', '_')), ` +
			`concat_ws('/', @@server_id, @@hostname, @@port)) */ /*!80000 @@server_uuid */{database})`,
		// In other sessions statements do not commit by themselves, or read uncommitted data.
		fit: `@@autocommit AND @@completion_type = 'NO_CHAIN' /*M! AND NOT @@in_transaction */ ` +
			`AND /*M! @@tx_isolation */ /*!80000 @@transaction_isolation */ <> 'READ-UNCOMMITTED'`,
		unfit: "set autocommit = 1, completion_type = NO_CHAIN and an isolation level above READ UNCOMMITTED for these " +
			"connections, and leave no transaction open on one",
		probe: `SET TRANSACTION READ WRITE`,
		clock: `timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(6))`,
		create: `CREATE TABLE IF NOT EXISTS {table} (
  name    varbinary(255) NOT NULL PRIMARY KEY,
  value   blob           NOT NULL,
  version varchar(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  floor   bigint         NOT NULL,
  era     varbinary(255) NOT NULL
) ENGINE=InnoDB`,
		read: `SELECT substring(t.value, 1, 4097), t.version, t.floor, t.era, {era}, {clock}, /*M! 0 */ /*!80000 1 */ ` +
			`FROM (SELECT 1 AS one) AS one LEFT JOIN {table} AS t ON t.name = ?`,
		insert: `INSERT INTO {table} (name, value, version, floor, era) ` +
			`SELECT ?, ?, ?, {credible clock} + 1, {era} FROM (SELECT 1 AS one) AS one WHERE {era} = ?`,
		update: `UPDATE {table} SET value = ?, version = ?, floor = greatest({credible floor}, {credible clock}) + 1, era = {era} ` +
			`WHERE name = ? AND version = ? AND {era} = ?`,
		rights:  `UPDATE {table} SET value = value, version = version, floor = floor, era = era WHERE name = ? AND false`,
		fence:   mysqlFence,
		means:   mysqlMeans,
		inspect: inspectMySQL,
		remedies: map[meaning]string{
			denied: "grant this user SELECT on the table, to a candidate INSERT and UPDATE too",
			refused: "check user and password, the hosts that the user may connect from, and TLS: the server " +
				"(require_secure_transport) or the user (REQUIRE SSL) may require it",
			noTLS:      "the server offers no TLS; set ssl_cert and ssl_key there, or tls=preferred here",
			noDatabase: "name the database in the connection's address, or make it with CREATE DATABASE",
			readOnly:   "the server takes no writes: it is a replica, or read_only is on; connect to the primary",
		},
	}
}

func mysqlMeans(code, text string) meaning {
	switch code {
	case "1062": // the row is there
		return conflict
	case "1568":
		return inTransaction
	case "1213", "1205": // this statement was undone because of another transaction
		return conflict
	case "1142", "1143", "1044", "1227", "1370":
		return denied
	case "1045", "1698", "1130", "1820", "1862", "3159":
		return refused
	case "1046", "1049":
		return noDatabase
	case "1146":
		return noTable
	case "1054", "1136", "1364", "1366", "1406":
		return otherLayout
	case "1290", "1836", "1792":
		return readOnly
	case "1193":
		return noEra
	case "":
		if strings.Contains(text, "server does not support TLS") { // go-sql-driver/mysql
			return noTLS
		}
	}
	return unknown
}
