// SPDX-License-Identifier: MIT
//
// allocator.cc - a std::vector and an object in shared memory.
//
//   jiac++ allocator.cc -o allocator && jiarun -n 4 ./allocator
//
// An allocator over jia_malloc() puts a container's *elements* into shared
// memory.  Three things follow from what jia.h says:
//   - jia_malloc() is collective: all ranks construct and grow the container
//     alike.  Then each has a container object of its own (private: size,
//     pointer) over the same elements.
//   - So elements are shared and the container is not: resizing it on one rank
//     is an error, which the next barrier finds and names.
//   - Who constructs the elements writes them.  Here nobody does: shared memory
//     begins as zeros, and construct() without arguments leaves it so;
//     otherwise every rank would write all of them.
#include <cstddef>
#include <cstdio>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#define JIA_NO_MACROS
#include <jia.h>

template <typename T> struct shared_allocator {
	using value_type = T;

	static_assert(std::is_trivially_destructible<T>::value,
		      "no rank is the one to destroy the elements");

	shared_allocator() = default;
	template <typename U>
	shared_allocator(const shared_allocator<U> &) noexcept
	{
	}

	T *allocate(std::size_t n)
	{
		if (n > std::numeric_limits<std::size_t>::max() / sizeof(T))
			throw std::bad_alloc();
		return static_cast<T *>(jia_malloc(n * sizeof(T)));
	}
	void deallocate(T *p, std::size_t) noexcept
	{
		jia_free(p);
	}
	template <typename U> void construct(U *) noexcept
	{
		static_assert(std::is_trivially_default_constructible<U>::value,
			      "zeros must be a value of the type");
	}
	template <typename U, typename... A> void construct(U *p, A &&...a)
	{
		::new (static_cast<void *>(p)) U(std::forward<A>(a)...);
	}
};
template <typename T, typename U>
bool operator==(const shared_allocator<T> &, const shared_allocator<U> &)
{
	return true;
}
template <typename T, typename U>
bool operator!=(const shared_allocator<T> &, const shared_allocator<U> &)
{
	return false;
}

template <typename T> using shared_vector = std::vector<T, shared_allocator<T>>;

// A lock that is released where the scope ends, also by an exception.
class scoped_lock {
	int id;

public:
	explicit scoped_lock(int lock) : id(lock)
	{
		jia_lock(id);
	}
	~scoped_lock()
	{
		jia_unlock(id);
	}
	scoped_lock(const scoped_lock &) = delete;
	scoped_lock &operator=(const scoped_lock &) = delete;
};

struct total {
	long sum, ranks;
};

static int run()
{
	const long n = 100000;
	shared_vector<long> square(static_cast<std::size_t>(n));
	shared_vector<total> all(1);
	long sum = 0, want = 0;

	for (long i = jia_pid; i < n; i += hostc)
		square[static_cast<std::size_t>(i)] = i * i;
	jia_barrier();

	// Each sums up what its neighbour wrote.
	for (long i = (jia_pid + 1) % hostc; i < n; i += hostc)
		sum += square[static_cast<std::size_t>(i)];
	{
		scoped_lock hold(0);
		all[0].sum += sum;
		all[0].ranks++;
	}
	jia_barrier();

	for (long i = 0; i < n; i++)
		want += i * i;
	if (all[0].sum != want || all[0].ranks != hostc)
		jia_error("the sum is %ld and should be %ld", all[0].sum, want);
	if (jia_pid == 0)
		std::printf("allocator: verified on %d ranks\n", hostc);
	return 0; // the vectors go, on all ranks alike
}

int main(int argc, char **argv)
{
	jia_init(argc, argv);
	int status = run();
	jia_exit();
	return status;
}
