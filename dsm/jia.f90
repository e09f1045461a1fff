! SPDX-License-Identifier: MIT
!
! jia.f90 - jia.h for Fortran 2003 and later.
!
!   use jia
!   use, intrinsic :: iso_c_binding
!   real(c_double), pointer :: a(:, :)
!   call jia_init()
!   call c_f_pointer(jia_malloc(8_c_size_t * n * m), a, [n, m])
!   a(i, j) = ...                  ! memory of all ranks, at one address
!   call jia_exit()
!
! Names, meaning and errors are those of jia.h (see jia(7)); ranks, locks and
! keys count from 0 as they do there.  Texts are ordinary Fortran strings.
! The module needs no compiler's extension; it is installed as source, too, for
! compilers other than the one it was built with.
module jia
  use, intrinsic :: iso_c_binding, only: c_int, c_long, c_size_t, c_float, &
    c_ptr, c_char, c_null_ptr, c_null_char
  implicit none
  private :: c_int, c_long, c_size_t, c_float, c_ptr, c_char, c_null_ptr, &
    c_null_char, c_text

  integer(c_int), bind(c, name='jia_pid'), protected :: jia_pid
  integer(c_int), bind(c, name='hostc'), protected :: jia_hosts

  integer(c_int), parameter :: JIA_OFF = 0, JIA_ON = 1
  integer(c_int), parameter :: JIA_HMIG = 0, JIA_ADWD = 1, JIA_BROADCAST = 2, &
    JIA_LOADBAL = 3, JIA_WVEC = 4

  interface
    subroutine jia_exit() bind(c, name='jia_exit')
    end subroutine

    function jia_malloc(bytes) bind(c, name='jia_malloc') result(p)
      import :: c_size_t, c_ptr
      integer(c_size_t), value :: bytes
      type(c_ptr) :: p
    end function

    function jia_malloc_on(bytes, block, home) bind(c, name='jia_malloc_on') &
        result(p)
      import :: c_size_t, c_int, c_ptr
      integer(c_size_t), value :: bytes, block
      integer(c_int), value :: home
      type(c_ptr) :: p
    end function

    subroutine jia_free(p) bind(c, name='jia_free')
      import :: c_ptr
      type(c_ptr), value :: p
    end subroutine

    subroutine jia_lock(lock) bind(c, name='jia_lock')
      import :: c_int
      integer(c_int), value :: lock
    end subroutine

    subroutine jia_unlock(lock) bind(c, name='jia_unlock')
      import :: c_int
      integer(c_int), value :: lock
    end subroutine

    subroutine jia_barrier() bind(c, name='jia_barrier')
    end subroutine

    subroutine jia_wait() bind(c, name='jia_wait')
    end subroutine

    subroutine jia_threads(n) bind(c, name='jia_threads')
      import :: c_int
      integer(c_int), value :: n
    end subroutine

    subroutine jia_config(key, val) bind(c, name='jia_config')
      import :: c_int
      integer(c_int), value :: key, val
    end subroutine

    function jia_clock() bind(c, name='jia_clock') result(seconds)
      import :: c_float
      real(c_float) :: seconds
    end function

    function jia_startstat() bind(c, name='jia_startstat') result(us)
      import :: c_int
      integer(c_int) :: us
    end function

    function jia_stopstat() bind(c, name='jia_stopstat') result(us)
      import :: c_int
      integer(c_int) :: us
    end function
  end interface

contains

  ! Arguments are read with get_command_argument(), as in any program.
  subroutine jia_init()
    interface
      subroutine c_init(argc, argv) bind(c, name='jia_init')
        import :: c_int, c_ptr
        integer(c_int), value :: argc
        type(c_ptr), value :: argv
      end subroutine
    end interface

    call c_init(0_c_int, c_null_ptr)
  end subroutine

  subroutine jia_set(name, text)
    character(len=*), intent(in) :: name, text
    interface
      subroutine c_set(name, text) bind(c, name='jia_set')
        import :: c_char
        character(kind=c_char), intent(in) :: name(*), text(*)
      end subroutine
    end interface

    call c_set(c_text(name), c_text(text))
  end subroutine

  ! Blanks at the end do not count, as elsewhere in Fortran.
  pure function c_text(text) result(c)
    character(len=*), intent(in) :: text
    character(kind=c_char, len=len_trim(text) + 1) :: c

    c = trim(text) // c_null_char
  end function
end module
